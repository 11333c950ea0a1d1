import { command, serviceFlags } from '../../define.ts'

const load = () => import('./run/serve-until-signal.ts')

export const gatewayCommand = command({
  brief: 'Run the RPC, WebSocket and gRPC bundle as its own process',
  details:
    'JSON-RPC on port 8899, WebSocket on 8900 and gRPC on 10010, to the nodes of upstreams.nodes. It replaces sluice serve where each service runs in a process of its own: sluice serve always runs the bundle, so the two cannot use the same ports. Processes on one machine have a state folder and a metrics port each, and one shared store.',
  examples: [''],
  flags: serviceFlags,
  load: async () => (await load()).runnerOf((await import('../../../processes/gateway.ts')).startGatewayProcess),
})

export const executionCommand = command({
  brief: 'Run the execution service as its own process',
  details:
    'Stream, REST, JSON-RPC and dashboard of an EVM node on port 8443. Exits with 75 when no event arrived for 30 s, so that a supervisor restarts it.',
  examples: [''],
  flags: serviceFlags,
  load: async () => (await load()).runnerOf((await import('../../../processes/execution.ts')).startExecutionProcess),
})

export const senderCommand = command({
  brief: 'Run TPU Sender as its own process',
  details:
    'Accepts tipped transactions on port 8901 and sends them to the nodes of upstreams.nodes, to relays and directly to leaders. If sluice serve runs beside it, set sender.enabled = false there and use two state folders.',
  examples: [''],
  flags: serviceFlags,
  load: async () => (await load()).runnerOf((await import('../../../processes/sender.ts')).startSenderProcess),
})

export const shredsCommand = command({
  brief: 'Run ShredStream Raw as its own process',
  details:
    'Receives shreds on UDP port 20000 and sends them to the destinations in the store. With nodes in upstreams.nodes it knows the leader schedule and verifies signatures. If sluice serve runs beside it, set shreds.enabled = false there, use two state folders and one shared store.',
  examples: [''],
  flags: serviceFlags,
  load: async () => (await load()).runnerOf((await import('../../../processes/shreds.ts')).startShredsProcess),
})
