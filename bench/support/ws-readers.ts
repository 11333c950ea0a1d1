import { createInterface } from 'node:readline'
import { startPinned } from './pinned-process.ts'

export type ReadFigures = {
  readonly messages: number
  readonly seconds: number
  readonly ageP50Ms: number
  readonly ageP99Ms: number
  readonly closed: number
  /** CPU time of the clients. */
  readonly cpuMs: number
}

export type WsReaders = AsyncDisposable & {
  /** Counts for the configured time, beginning now. */
  measure(): Promise<ReadFigures>
}

export type WsReadersOptions = {
  /** `reference/ws-readers.c`, compiled. */
  readonly program: string
  readonly core: number | string
  readonly port: number
  readonly path: string
  readonly token?: string
  readonly subscribe?: string
  readonly clients: number
  readonly measureMs: number
  readonly niceness?: number
}

/** The clients of a WebSocket bench in their own process; resolves when all are connected. */
export async function startWsReaders(options: WsReadersOptions): Promise<WsReaders> {
  const { program, core, port, path, token = '', subscribe = '', clients, measureMs, niceness = 0 } = options
  const words = [port, path, token, clients, subscribe, measureMs].map(String)
  const started = startPinned(core, program, words, { stdin: 'pipe', niceness })
  const lines = createInterface({ input: started.child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  const next = async (): Promise<unknown> => {
    const line = await lines.next()
    if (line.done === true) throw new Error('the clients ended without output')
    return JSON.parse(line.value)
  }
  await next()
  return {
    async measure() {
      started.child.stdin?.write('begin\n')
      return (await next()) as ReadFigures
    },
    [Symbol.asyncDispose]: () => started[Symbol.asyncDispose](),
  }
}
