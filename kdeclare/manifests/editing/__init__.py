"""Edit manifest files so that only the intended fields change; comments and layout stay.

Text is spliced at the positions of the composed nodes. The result is then composed again: it must contain the
intended change and no other difference. An edit for which no splice achieves this is refused.
"""
