"""Hosts of the net by their own names: a proxy that answers in their place, by a throw-away CA.

A client that finds `environment` in its own asks the real addresses, and its words reach fakes.
"""

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.providers.loopback import Handler, LoopbackFake


class FakeHosts(LoopbackFake):
    """The proxy, in this process, as long as its block lasts; no other host can be reached."""

    def __init__(self, fakes: Mapping[str, LoopbackFake], folder: Path) -> None:
        """Take the fake of each host, and a folder for the certificate and its key."""
        self._certificate = folder / "hosts.pem"
        write_certificate(self._certificate, [*fakes])
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self._certificate)
        handlers = {host: fake.handler for host, fake in fakes.items()}
        super().__init__(_Tunnel, handlers=handlers, tls=tls)

    @property
    def environment(self) -> dict[str, str]:
        """What leads a client here."""
        proxy = f"http://127.0.0.1:{self.port}"
        return {"HTTPS_PROXY": proxy, "NO_PROXY": "", "SSL_CERT_FILE": str(self._certificate)}


class _Tunnel(Handler):
    """One connection to a host, whose fake handles what is in it."""

    handlers: Mapping[str, type[BaseHTTPRequestHandler]]
    tls: ssl.SSLContext

    def do_CONNECT(self) -> None:  # noqa: N802  # theirs
        """Take the place of the host."""
        host, _, _ = self.path.partition(":")
        self.send_response(200)
        self.end_headers()
        with self.tls.wrap_socket(self.connection, server_side=True) as inside:
            self.handlers[host](inside, self.client_address, self.server)
        self.close_connection = True


def write_certificate(file: Path, hosts: list[str]) -> None:
    """Write a certificate of hosts, which is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fakes of hosts")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([*map(x509.DNSName, hosts)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file.write_bytes(certificate.public_bytes(pem) + key.private_bytes(pem, *plain))
