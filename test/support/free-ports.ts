import { once } from 'node:events'
import { createServer } from 'node:net'

/** A port of the loopback for a program that cannot be told to choose one itself. */
export async function freePort(): Promise<number> {
  return (await freePorts(1))[0] as number
}

/** Several, held together while they are chosen, so that all differ. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}
