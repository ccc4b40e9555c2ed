"""Convert the files of other tools into manifests, and list what has no counterpart.

Each source format has one module. A format knows kinds only by the documents that it writes.
"""
