import type { Clock, Timer } from '../../core/clock.ts'
import { type ErrorFields, ServiceError } from '../../core/error.ts'

/** Messages of a channel, as they are posted to the other thread. */
export type ChannelMessage =
  | { readonly kind: 'call'; readonly id: number; readonly method: string; readonly params: unknown }
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'error'; readonly id: number; readonly error: PostedError }
  | { readonly kind: 'notification'; readonly name: string; readonly value: unknown }

/** An error that is posted. A `ServiceError` keeps its code, fields and fix. */
export type PostedError = {
  readonly code: string | undefined
  readonly message: string
  readonly fix: string | undefined
  readonly fields: ErrorFields
  readonly stack: string | undefined
}

/** What one thread offers to the other: methods to call, and notifications, which have no reply. Every function takes at most one value. */
export type ChannelSide = {
  readonly methods: Readonly<Record<string, (params: never) => unknown>>
  readonly notifications: Readonly<Record<string, (value: never) => void>>
}

/** How a side is implemented: a method may take its time. */
export type Offered<Side extends ChannelSide> = {
  readonly methods: {
    readonly [Name in keyof Side['methods']]: (
      ...params: Parameters<Side['methods'][Name]>
    ) => ReturnType<Side['methods'][Name]> | Promise<ReturnType<Side['methods'][Name]>>
  }
  readonly notifications: Side['notifications']
}

/** Calls and notifications to a thread that offers `Remote`. */
export type ThreadChannel<Remote extends ChannelSide> = {
  /** Rejects with the error of the other thread, and where that does not reply in time or has ended. */
  call<Name extends keyof Remote['methods'] & string>(
    method: Name,
    params: Parameters<Remote['methods'][Name]>[0],
    timeoutMs?: number,
  ): Promise<ReturnType<Remote['methods'][Name]>>
  notify<Name extends keyof Remote['notifications'] & string>(
    name: Name,
    ...value: Parameters<Remote['notifications'][Name]>
  ): void
  receive(message: ChannelMessage): void
  /** Rejects all open calls: the other thread has ended. */
  end(error: Error): void
}

export type ThreadChannelDeps = {
  post(message: ChannelMessage): void
  readonly clock: Pick<Clock, 'setTimer'>
  readonly methods: ChannelSide['methods']
  readonly notifications: ChannelSide['notifications']
}

const CALL_MS = 5000

type OpenCall = { resolve(value: never): void; reject(error: Error): void; readonly timer: Timer }

/** A channel to a thread that offers `Remote`; `methods` and `notifications` are what this thread offers. */
export function createThreadChannel<Remote extends ChannelSide>({
  post,
  clock,
  methods,
  notifications,
}: ThreadChannelDeps): ThreadChannel<Remote> {
  const calls = new Map<number, OpenCall>()
  let lastId = 0
  let ended: Error | undefined

  function settle(id: number, act: (call: OpenCall) => void): void {
    const call = calls.get(id)
    if (call === undefined) return
    calls.delete(id)
    call.timer.cancel()
    act(call)
  }

  async function respond(id: number, method: string, params: unknown): Promise<void> {
    try {
      const run = methods[method]
      if (run === undefined) throw new Error(`the thread has no method ${method}`)
      post({ kind: 'result', id, value: await run(params as never) })
    } catch (error) {
      post({ kind: 'error', id, error: postedError(error) })
    }
  }

  return {
    call(method, params, timeoutMs = CALL_MS) {
      if (ended !== undefined) return Promise.reject(ended)
      const { promise, resolve, reject } = Promise.withResolvers<never>()
      const id = ++lastId
      const timer = clock.setTimer(timeoutMs, () =>
        settle(id, (call) => call.reject(new Error(`the thread did not reply to ${method} in ${timeoutMs} ms`))),
      )
      calls.set(id, { resolve, reject, timer })
      post({ kind: 'call', id, method, params })
      return promise
    },
    notify: (name, ...[value]: readonly unknown[]) => post({ kind: 'notification', name, value }),
    receive(message) {
      if (message.kind === 'notification') notifications[message.name]?.(message.value as never)
      else if (message.kind === 'call') void respond(message.id, message.method, message.params)
      else if (message.kind === 'result') settle(message.id, (call) => call.resolve(message.value as never))
      else settle(message.id, (call) => call.reject(errorFrom(message.error)))
    },
    end(error) {
      ended = error
      for (const id of [...calls.keys()]) settle(id, (call) => call.reject(error))
    },
  }
}

export function postedError(error: unknown): PostedError {
  if (error instanceof ServiceError) {
    const { code, message, fix, fields, stack } = error
    return { code, message, fix, fields, stack }
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  return { code: undefined, message, fix: undefined, fields: {}, stack }
}

export function errorFrom({ code, message, fix, fields, stack }: PostedError): Error {
  const error =
    code === undefined
      ? new Error(message)
      : new ServiceError(code, message, { fields, ...(fix === undefined ? {} : { fix }) })
  if (stack !== undefined) error.stack = stack
  return error
}
