"""Is there an order of the operations that explains the answers?"""
