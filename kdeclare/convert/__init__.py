"""Convert the files of other tools into manifests, and list everything that kdeclare does not support.

Each source format has one module. The modules do not import the kinds whose manifests they write.
"""
