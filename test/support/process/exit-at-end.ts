/**
 * Preloaded by every test file of a run. Where nothing is left to do, Node frees what it has before it ends, and there it can wait forever for the request of a closed
 * handle, at full speed (seen with 26.10 after the soak; the stack is `uv_run` below `CleanupHandles`). The last listener of `exit` ends the process before that. What a
 * file leaves open still keeps it alive.
 */
process.once('beforeExit', () => process.on('exit', () => process.exit()))
