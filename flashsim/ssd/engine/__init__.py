"""The fast drive: the event model of `flashsim.ssd.specification`, compiled."""
