"""The museum of real lock libraries: what each does under which condition, found by a run."""
