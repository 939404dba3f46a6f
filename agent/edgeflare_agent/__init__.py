"""The EdgeFlare agent: runs the deployed model on the device and answers over stdin/stdout.

Goes to the device as one zipapp. Python 3.8+, the standard library, numpy and one runtime; nothing
else. The host imports the same modules, so that both ends prepare the same bits.
"""
