"""Who checks the promises at every event, apart from the product."""
