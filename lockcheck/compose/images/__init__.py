"""The images of the docker runtime: a folder with a Dockerfile for each, and how they are built."""
