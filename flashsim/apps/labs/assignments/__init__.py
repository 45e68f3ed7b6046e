"""The labs, a file each: what is written, and how it is judged (`flashsim.apps.labs.grading.Lab`)."""
