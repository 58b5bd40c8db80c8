"""What tests of several rooms use; a folder for each room that they test, `on_cluster` for people and neighbours."""
