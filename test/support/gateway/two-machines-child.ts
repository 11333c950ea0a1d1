import { startDataMachine } from '../machine/data-machine.ts'
import { respondToCalls } from '../machine/namespaces.ts'
import { startGatewayMachine } from './machine.ts'

/** One machine of the test with two gateways, in its network namespace: `data`, `ingesting` or `answering`. */
const [, , role] = process.argv
await using machine =
  role === 'data' ? await startDataMachine() : await startGatewayMachine({ ingests: role === 'ingesting' })
await respondToCalls(machine.calls)
