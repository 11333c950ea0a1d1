import { buildRouteMap } from '@stricli/core'
import { command } from '../../define.ts'

export const versionCommand = command({
  brief: 'Print the versions of Sluice and Node',
  examples: ['', '--json'],
  load: async () => (await import('./run/self.ts')).version,
})

const completion = (shell: 'bash' | 'zsh' | 'fish') =>
  command({
    brief: `Print the completion script for ${shell}`,
    examples: [''],
    load: async () => (await import('./run/self.ts')).completionFor(shell),
  })

export const completionRoutes = buildRouteMap({
  docs: { brief: 'Shell completion' },
  routes: { bash: completion('bash'), zsh: completion('zsh'), fish: completion('fish') },
})
