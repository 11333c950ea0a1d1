/** Loaded before a program (`--import`): prints a line on standard error when it opens a port. */
import dgram from 'node:dgram'
import net from 'node:net'

for (const [opener, name] of [
  [net.Server.prototype, 'listen'],
  [dgram.Socket.prototype, 'bind'],
] as const) {
  const methods = opener as unknown as Record<string, (...args: unknown[]) => unknown>
  const original = methods[name]
  methods[name] = function (this: unknown, ...args: unknown[]) {
    process.stderr.write(`a port is opened: ${name}\n`)
    return original?.apply(this, args)
  }
}
