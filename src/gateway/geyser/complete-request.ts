import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import type { GrpcEnd, GrpcStream } from '../../platform/grpc/stream.ts'

type OpenedStream =
  | { readonly ok: true; readonly stream: GrpcStream }
  | { readonly ok: false; readonly status: GrpcStatus }

export type CompleteRequestDeps = {
  /** Opens the call at a node. */
  open(): Promise<OpenedStream>
  /** Cancels a call at a node whose client left while it was being opened. */
  cancel(stream: GrpcStream): void
  onError(error: unknown): void
}

/**
 * The stream of a unary call, which is opened at a node when the client has sent its whole request. Until then it holds nothing at the node, whose
 * streams are for all customers.
 */
export function openWithCompleteRequest({ open, cancel, onError }: CompleteRequestDeps): GrpcStream {
  /** What is done with the stream as soon as it is open. */
  const later: ((stream: GrpcStream) => void)[] = []
  const endListeners: ((end: GrpcEnd) => void)[] = []
  let hasRequest = false
  let isOpening = false
  let opened: GrpcStream | undefined
  /** How it ended without a node. */
  let ended: GrpcEnd | undefined

  function use(action: (stream: GrpcStream) => void): void {
    if (opened === undefined) later.push(action)
    else action(opened)
  }

  function end(status: GrpcStatus): void {
    if (ended !== undefined) return
    ended = { status, isFromServer: true }
    for (const listener of endListeners.splice(0)) listener(ended)
  }

  async function openNow(): Promise<void> {
    isOpening = true
    const found = await open()
    if (ended !== undefined) {
      if (found.ok) cancel(found.stream)
      return
    }
    if (!found.ok) return end(found.status)
    opened = found.stream
    for (const listener of endListeners.splice(0)) opened.onEnd(listener)
    for (const action of later.splice(0)) action(opened)
  }

  return {
    write(frames) {
      hasRequest = true
      use((stream) => stream.write(frames))
      return true
    },
    halfClose() {
      if (ended !== undefined || isOpening) return
      if (!hasRequest) return end(NO_REQUEST)
      use((stream) => stream.halfClose())
      openNow().catch(onError)
    },
    cancel() {
      if (opened === undefined) end(CANCELLED)
      else opened.cancel()
    },
    onWritable: (listener) => use((stream) => stream.onWritable(listener)),
    onHeaders: (listener) => use((stream) => stream.onHeaders(listener)),
    onData: (listener) => use((stream) => stream.onData(listener)),
    pause: () => use((stream) => stream.pause()),
    resume: () => use((stream) => stream.resume()),
    onEnd(listener) {
      if (ended !== undefined) listener(ended)
      else if (opened !== undefined) opened.onEnd(listener)
      else endListeners.push(listener)
    },
  }
}

const NO_REQUEST: GrpcStatus = { code: GrpcCode.internal, message: 'no request for a unary call' }
const CANCELLED: GrpcStatus = { code: GrpcCode.cancelled }
