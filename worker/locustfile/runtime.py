# What the classes below call.
