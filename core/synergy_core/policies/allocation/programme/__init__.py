"""The linear programmes behind the allocation policies, and what makes them small enough to solve."""
