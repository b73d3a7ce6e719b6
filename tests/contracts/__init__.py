"""One suite per contract; every implementation inherits it and says how to make one."""
