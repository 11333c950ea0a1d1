import { type CommonFlags, command, commonFlags } from '../../define.ts'

export const executionCommand = command<CommonFlags>({
  brief: 'Run the execution service alone',
  details:
    'Stream, REST, JSON-RPC and dashboard of an EVM node on port 8443. Ends with exit code 75 when no event came for 30 s, so that a supervisor starts it again.',
  examples: [''],
  parameters: { flags: commonFlags },
  load: async () => (await import('./run/execution.ts')).execution,
})
