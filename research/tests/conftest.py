import hypothesis
from threadpoolctl import threadpool_limits

hypothesis.settings.register_profile("dafh", deadline=None, derandomize=True, max_examples=15)
hypothesis.settings.register_profile("thorough", hypothesis.settings.get_profile("dafh"), max_examples=300)
hypothesis.settings.load_profile("dafh")
# Tests run in one process per core, and their threads would wait for each other.
threadpool_limits(1)
