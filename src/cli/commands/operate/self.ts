import { buildRouteMap } from '@stricli/core'
import { type CommonFlags, command, commonFlags } from '../../define.ts'

export const versionCommand = command<CommonFlags>({
  brief: 'Print the versions of Sluice and Node',
  examples: ['', '--json'],
  parameters: { flags: commonFlags },
  load: async () => (await import('./run/self.ts')).version,
})

const completion = (shell: 'bash' | 'zsh' | 'fish') =>
  command<CommonFlags>({
    brief: `Print the completion script for ${shell}`,
    examples: [''],
    parameters: { flags: commonFlags },
    load: async () => (await import('./run/self.ts')).completionFor(shell),
  })

export const completionRoutes = buildRouteMap({
  docs: { brief: 'Shell completion' },
  routes: { bash: completion('bash'), zsh: completion('zsh'), fish: completion('fish') },
})
