import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { createServer, type Server } from 'node:net'

/**
 * Below the kernel's ephemeral ports, which by default start at 32768: test files run in parallel, and an outgoing connection could
 * otherwise take the port before the program listens on it.
 */
const FIRST = 21_000
const COUNT = 9_000

/** A free loopback port for a program that cannot use port 0 or must restart on the same port. */
export async function freePort(): Promise<number> {
  return (await freePorts(1))[0] as number
}

/** Several ports, different from each other and from those of all other test processes. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  for (let tries = 0; ports.length < count; tries++) {
    assert(tries < COUNT, 'no free port')
    const port = FIRST + randomInt(COUNT)
    if (await claim(port)) ports.push(port)
  }
  return ports
}

/** Reserves the port until this process ends, with an abstract socket named after the port, which only one process can bind. */
async function claim(port: number): Promise<boolean> {
  const name = await listen({ path: `\0sluice-test-port-${port}` })
  if (name === undefined) return false
  name.unref()
  const server = await listen({ host: '127.0.0.1', port })
  if (server === undefined) name.close()
  else await new Promise((resolve) => server.close(resolve))
  return server !== undefined
}

function listen(where: { path: string } | { host: string; port: number }): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(where, () => resolve(server))
  })
}
