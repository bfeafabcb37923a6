"""What every command answers where it cannot do what it is told: rows of what is typed, in which place, and the one line that comes.

``of_words``       wrong words, options and values
``of_clusters``    registrations that cannot be
``of_places``      tables that are missing, cannot be reached or are forbidden; an environment that cannot be right
``of_files``       manifests that cannot be read
"""
