"""`make release`: everything that a release of the project has, in one folder."""
