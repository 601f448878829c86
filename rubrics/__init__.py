"""The rubrics that ship with tourney, one versioned Markdown file per dimension."""
