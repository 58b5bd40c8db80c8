"""The dashboard over clusters that tests make up, its page with their answers, its databases."""
