import { ServiceError } from '../../core/service-error.ts'
import { type CliContext, type CommonFlags, command, commonFlags } from './define.ts'

/** Commands of products that this build does not have yet. This is the one place that says so. */
export function notInBuild(words: string, brief: string) {
  return command<CommonFlags, string[]>({
    brief: `${brief} (not available in this build)`,
    examples: [''],
    parameters: {
      flags: commonFlags,
      positional: { kind: 'array', parameter: { placeholder: 'ARGUMENTS', brief: 'Ignored', parse: String } },
    },
    load: async () =>
      async function refuse(this: CliContext) {
        throw new ServiceError('not-in-build', `"sluice ${words}" is not available in this build`)
      },
  })
}
