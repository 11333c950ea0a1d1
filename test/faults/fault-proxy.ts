import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Clock } from '../../src/core/clock.ts'
import { createSeededRandom, type Random } from '../../src/core/random.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { freePort } from '../support/machine/free-ports.ts'
import { createStage, type Next, type Stage, type Toxic } from './toxics.ts'

export type FaultProxyOptions = { readonly target: { readonly host: string; readonly port: number } }
export type FaultProxyDeps = { readonly clock?: Clock; readonly random?: Random }

/** A TCP proxy on loopback that injects the faults of networks and failing servers. */
export type FaultProxy = AsyncDisposable & {
  readonly host: string
  /** Stays the same while the proxy is down. */
  readonly port: number
  /** Adds a toxic to all connections, also open ones, after the existing toxics. */
  add(toxic: Toxic): { remove(): void }
  /** Removes all toxics. */
  clear(): void
  /** Refuses connections and closes the open ones, like a stopped server. */
  disable(): Promise<void>
  enable(): Promise<void>
  /** Resets every open connection and keeps listening. */
  resetConnections(): void
  readonly openConnections: number
  readonly accepted: number
  /** Bytes that left the proxy, by direction. */
  readonly bytes: { readonly upstream: number; readonly downstream: number }
}

/** Above this many held bytes in one direction, reading from the source pauses, as with a full socket. */
const HELD_BYTES_MAX = 256 * 1024

type Way = 'upstream' | 'downstream'
type Link = { setToxics(toxics: readonly Toxic[]): void; cut(how: 'destroy' | 'reset'): void }

export async function startFaultProxy({ target }: FaultProxyOptions, given: FaultProxyDeps = {}): Promise<FaultProxy> {
  const deps = { clock: given.clock ?? systemClock, random: given.random ?? createSeededRandom(1) }
  const toxics: Toxic[] = []
  const links = new Set<Link>()
  const bytes = { upstream: 0, downstream: 0 }
  let accepted = 0
  // It closes and listens again on the same port, which must not be taken in between.
  const port = await freePort()
  let server = await listen(port)

  async function listen(onPort: number): Promise<Server> {
    const opened = createServer({ allowHalfOpen: true, noDelay: true }, accept)
    opened.listen(onPort, '127.0.0.1')
    await once(opened, 'listening')
    return opened
  }

  function accept(client: Socket): void {
    accepted += 1
    const onServer = connect({ ...target, allowHalfOpen: true, noDelay: true })
    const link = createLink(client, onServer)
    links.add(link)
    link.setToxics(toxics)
  }

  function createLink(client: Socket, onServer: Socket): Link {
    let isCut = false
    const cut = (how: 'destroy' | 'reset') => {
      if (isCut) return
      isCut = true
      links.delete(link)
      up.stop()
      down.stop()
      for (const socket of [client, onServer]) {
        if (how === 'reset') socket.resetAndDestroy()
        else socket.destroy()
      }
    }
    const shared = { cut, count: (way: Way, by: number) => void (bytes[way] += by), ...deps }
    const up = createPath('upstream', { from: client, to: onServer, ...shared })
    const down = createPath('downstream', { from: onServer, to: client, ...shared })
    for (const socket of [client, onServer]) {
      // The other side sees the same kind of end.
      socket.on('error', (error: NodeJS.ErrnoException) => cut(error.code === 'ECONNRESET' ? 'reset' : 'destroy'))
      socket.on('close', () => {
        if (client.destroyed && onServer.destroyed) cut('destroy')
      })
    }
    const link: Link = {
      cut,
      setToxics(list) {
        up.setToxics(list)
        down.setToxics(list)
      },
    }
    return link
  }

  const reportLinks = () => {
    for (const link of links) link.setToxics(toxics)
  }
  const cutAll = (how: 'destroy' | 'reset') => {
    for (const link of [...links]) link.cut(how)
  }
  const stopListening = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    cutAll('destroy')
    await closed
  }

  return {
    host: '127.0.0.1',
    port,
    add(toxic) {
      toxics.push(toxic)
      reportLinks()
      return {
        remove() {
          const at = toxics.indexOf(toxic)
          if (at !== -1) toxics.splice(at, 1)
          reportLinks()
        },
      }
    },
    clear() {
      toxics.length = 0
      reportLinks()
    },
    disable: stopListening,
    async enable() {
      if (!server.listening) server = await listen(port)
    },
    resetConnections: () => cutAll('reset'),
    get openConnections() {
      return links.size
    },
    get accepted() {
      return accepted
    },
    bytes,
    [Symbol.asyncDispose]: stopListening,
  }
}

type PathParts = {
  readonly from: Socket
  readonly to: Socket
  readonly cut: (how: 'destroy' | 'reset') => void
  readonly count: (way: Way, bytes: number) => void
  readonly clock: Clock
  readonly random: Random
}

/** One direction of one connection: source, the stages of its toxics in order, destination. */
function createPath(way: Way, { from, to, cut, count, clock, random }: PathParts) {
  let stages: { toxic: Toxic; stage: Stage | undefined }[] = []
  let heldBytes = 0
  let isStopped = false

  /** What comes after the stage of this toxic; after the last one, or after one that is gone, the destination. */
  function after(toxic: Toxic | undefined): { data(chunk: Buffer): void; end(): void } {
    const at = toxic === undefined ? -1 : stages.findIndex((entry) => entry.toxic === toxic)
    for (const { stage } of stages.slice(at + 1)) {
      if (stage !== undefined) return stage
    }
    return { data: write, end: () => void to.end() }
  }

  function write(chunk: Buffer): void {
    if (isStopped || to.destroyed) return
    count(way, chunk.length)
    to.write(chunk, () => letGo(chunk.length))
  }

  function letGo(bytes: number): void {
    heldBytes -= bytes
    if (heldBytes < HELD_BYTES_MAX && from.isPaused()) from.resume()
  }

  function makeStage(toxic: Toxic): Stage | undefined {
    if ((toxic.stream ?? 'downstream') !== way || random.float() >= (toxic.toxicity ?? 1)) return undefined
    const next: Next = {
      data: (chunk) => after(toxic).data(chunk),
      end: () => after(toxic).end(),
      drop: letGo,
      close: () => cut('destroy'),
      reset: () => cut('reset'),
    }
    return createStage(toxic, next, { clock, random })
  }

  from.on('data', (chunk: Buffer) => {
    heldBytes += chunk.length
    if (heldBytes >= HELD_BYTES_MAX) from.pause()
    after(undefined).data(chunk)
  })
  from.on('end', () => after(undefined).end())

  return {
    setToxics(toxics: readonly Toxic[]) {
      for (const entry of [...stages]) {
        if (toxics.includes(entry.toxic)) continue
        entry.stage?.release()
        stages = stages.filter((other) => other !== entry)
      }
      for (const toxic of toxics) {
        if (!stages.some((entry) => entry.toxic === toxic)) stages.push({ toxic, stage: makeStage(toxic) })
      }
    },
    stop() {
      isStopped = true
      for (const { stage } of stages) stage?.stop()
    },
  }
}
