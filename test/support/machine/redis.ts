import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crash } from '../process/crash.ts'
import { freePort } from './free-ports.ts'

export type RedisServer = AsyncDisposable & {
  readonly port: number
  readonly url: string
  readonly pid: () => number | undefined
  /** Kills the server with SIGKILL. */
  kill(): Promise<void>
  /** Starts it again on the same port, empty. */
  start(): Promise<void>
}

const READY_WITHIN_MS = 15_000

type Options = {
  /** Password of the default user. */
  readonly password?: string
  /** A further user, who may do everything. */
  readonly user?: { readonly name: string; readonly password: string }
}

/** A redis-server on a free loopback port, in a temporary folder, without persistence. */
export async function startRedis(options: Options = {}): Promise<RedisServer> {
  const port = await freePort()
  const dir = await mkdtemp(join(tmpdir(), 'sluice-redis-'))
  let child: ChildProcess | undefined

  async function start(): Promise<void> {
    const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--appendonly', 'no']
    if (options.password !== undefined) args.push('--requirepass', options.password)
    if (options.user !== undefined)
      args.push('--user', options.user.name, 'on', `>${options.user.password}`, '~*', '&*', '+@all')
    const started = spawn('redis-server', args, { stdio: 'ignore' })
    child = started
    const failed = new Promise<never>((_, reject) => started.once('error', reject))
    await Promise.race([ready(port), failed])
  }

  async function kill(): Promise<void> {
    await crash(child)
    child = undefined
  }

  await start()
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    pid: () => child?.pid,
    kill,
    start,
    async [Symbol.asyncDispose]() {
      await kill()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

async function ready(port: number): Promise<void> {
  const endAt = Date.now() + READY_WITHIN_MS
  while (Date.now() < endAt) {
    if (await responses(port)) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`redis-server on port ${port} did not respond within ${READY_WITHIN_MS} ms`)
}

function responses(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => socket.write('PING\r\n'))
    // `+PONG`, or `-NOAUTH` where a password is set: in both cases the server is ready.
    socket.once('data', () => end(true))
    socket.once('error', () => end(false))
    socket.once('close', () => end(false))
    function end(isUp: boolean): void {
      socket.destroy()
      resolve(isUp)
    }
  })
}
