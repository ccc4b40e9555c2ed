"""What policies are shown: what a plan asks for, what is declared, what is there."""
