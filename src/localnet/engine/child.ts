import { keepCompiledSource } from '../../platform/process/child.ts'
import { Engine } from './engine.ts'
import type { FromEngine, ToEngine } from './protocol.ts'

/**
 * The engine's child process, forked by `process.ts`. It replies to every batch of requests with one batch of replies,
 * has no state that must be saved, and ends with its parent.
 */
const engine = new Engine()
keepCompiledSource()

process.on('message', (batch: ToEngine) => {
  const replies: FromEngine = batch.map(({ seq, request }) => ({ seq, reply: engine.handle(request) }))
  process.send?.(replies)
})
process.on('disconnect', () => {
  process.exitCode = 0
  process.removeAllListeners('message')
})
// Ctrl-C in a terminal signals the whole process group; the parent decides when this process ends.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
