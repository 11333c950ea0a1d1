/**
 * The rest of a response body that still streams: a large body is passed on in pieces, read from its source only as fast as the client takes it.
 * Nothing is read before `start`, nor while paused.
 */
export type ResponseRest = {
  start(listener: RestListener): void
  pause(): void
  resume(): void
  /** Ends the source before its end. The listener is not called any more. */
  abort(): void
}

export type RestListener = {
  /** The buffer is the listener's to keep. */
  onData(chunk: Buffer): void
  onEnd(): void
  /** The body ends here, incomplete. `cause` is that of the connection it came from, where there is one. */
  onFail(cause?: string): void
}
