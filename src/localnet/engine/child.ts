import { keepCompiledSource } from '../../platform/process/child.ts'
import { createEngine } from './engine.ts'
import type { FromEngine, ToEngine } from './protocol.ts'

/**
 * The process the chain's engine lives in. It is forked by `chain-process.ts`, answers every batch of requests with one
 * batch of replies, keeps no state of its own worth saving, and ends with its parent.
 */
const engine = createEngine()
keepCompiledSource()

process.on('message', (batch: ToEngine) => {
  const replies: FromEngine = batch.map(({ seq, request }) => ({ seq, reply: engine.handle(request) }))
  process.send?.(replies)
})
process.on('disconnect', () => {
  process.exitCode = 0
  process.removeAllListeners('message')
})
// A terminal's interrupt reaches the whole process group; the parent decides when this one ends.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
