"""The page: HTML, CSS and JavaScript without a build step."""
