"""What people run: the command line, reproduced papers, reports and plots."""
