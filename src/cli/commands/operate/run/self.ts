import { VERSION } from '../../../../processes/compose/process/version.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { printFacts, printJson } from '../../../output/print.ts'

export async function version(this: CliContext, flags: CommonFlags): Promise<void> {
  const facts = { sluice: VERSION, node: process.versions.node, platform: `${process.platform}-${process.arch}` }
  if (flags.json === true) printJson(this, facts)
  else printFacts(this, Object.entries(facts))
}

/** Completion scripts that call `sluice __complete`. */
const SCRIPTS = {
  bash: `_sluice_complete() {
  local IFS=$'\\n'
  COMPREPLY=( $(sluice __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) )
}
complete -o default -F _sluice_complete sluice
`,
  zsh: `#compdef sluice
_sluice() {
  local -a found
  found=( \${(f)"$(sluice __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)"} )
  compadd -- $found
}
compdef _sluice sluice
`,
  fish: `complete -c sluice -f -a '(sluice __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
} as const

export function completionFor(shell: keyof typeof SCRIPTS) {
  return async function completion(this: CliContext): Promise<void> {
    this.process.stdout.write(SCRIPTS[shell])
  }
}
