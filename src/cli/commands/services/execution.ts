import { command, type ServiceFlags, serviceFlags } from '../../define.ts'

export const executionCommand = command<ServiceFlags>({
  brief: 'Run the execution service as its own process',
  details:
    'Stream, REST, JSON-RPC and dashboard of an EVM node on port 8443. Exits with 75 when no event arrived for 30 s, so that a supervisor restarts it.',
  examples: [''],
  parameters: { flags: serviceFlags },
  load: async () => (await import('./run/execution.ts')).execution,
})
