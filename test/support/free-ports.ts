import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { createServer, type Server } from 'node:net'

/**
 * Below the ports that the kernel gives to those who ask for any, which by default start at 32768: test files run beside each other, and
 * between the choice and the moment the program listens somebody's outgoing connection would get it.
 */
const FIRST = 21_000
const COUNT = 9_000

/** A port of the loopback for a program that cannot be told to choose one itself, or that has to come back on the same. */
export async function freePort(): Promise<number> {
  return (await freePorts(1))[0] as number
}

/** Several, all different, and different from those of all other test processes. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  for (let tries = 0; ports.length < count; tries++) {
    assert(tries < COUNT, 'no port is free')
    const port = FIRST + randomInt(COUNT)
    if (await claim(port)) ports.push(port)
  }
  return ports
}

/** Ours until this process ends: a socket without a file bears the name of the port, and no other process can have that name too. */
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
