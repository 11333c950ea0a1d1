import { closeSync, openSync } from 'node:fs'
import { basename, dirname } from 'node:path'

/** The longest address of a unix socket, without its closing zero (unix(7)). */
const ADDRESS_BYTES_MAX = 107

/**
 * An address for the socket at this path that is short enough for the kernel: a path that is too long is reached through an
 * open descriptor of its folder. Only needed while binding or connecting.
 */
export function socketPath(path: string): { path: string } & Disposable {
  if (Buffer.byteLength(path) <= ADDRESS_BYTES_MAX) return { path, [Symbol.dispose]() {} }
  const folder = openSync(dirname(path), 'r')
  return { path: `/proc/self/fd/${folder}/${basename(path)}`, [Symbol.dispose]: () => closeSync(folder) }
}
