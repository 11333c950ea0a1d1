import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

export type Load = {
  readonly core: number | string
  readonly port: number
  readonly token: string
  readonly body: string
  readonly connections: number
  readonly seconds: number
}

/** Maximum load from a number of connections, with wrk from Debian. */
export async function runWrk(load: Load): Promise<{ perSecond: number; requests: number; failed: number }> {
  const { core, port, token, body, connections, seconds } = load
  const wrk = ['wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '-s', join(import.meta.dirname, 'rpc-post.lua')]
  const { stdout } = await promisify(execFile)('taskset', ['-c', String(core), ...wrk, `http://127.0.0.1:${port}/`], {
    env: { ...process.env, BENCH_BODY: body, BENCH_TOKEN: token },
  })
  const number = (pattern: RegExp) => Number(pattern.exec(stdout)?.[1] ?? 0)
  const perSecond = number(/Requests\/sec:\s+([\d.]+)/)
  if (perSecond === 0) throw new Error(stdout)
  const sockets = [...(/Socket errors: (.*)/.exec(stdout)?.[1] ?? '').matchAll(/\d+/g)].map(Number)
  const failed = number(/Non-2xx or 3xx responses: (\d+)/) + sockets.reduce((sum, count) => sum + count, 0)
  return { perSecond, requests: number(/(\d+) requests in/), failed }
}
