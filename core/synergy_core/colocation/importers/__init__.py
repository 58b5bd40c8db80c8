"""Readers of measurements that other tools made: samples, kernel counters and Nsight Compute's reports."""
