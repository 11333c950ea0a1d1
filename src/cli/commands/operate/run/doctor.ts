import { styleText } from 'node:util'
import type { Finding } from '../../../../processes/compose/config/finding.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { examine } from '../../../doctor/doctor.ts'
import { findSettingsSource } from '../../../find-settings.ts'
import { showCheckProgress } from '../../../output/check-progress.ts'
import { sanitizeForTerminal } from '../../../output/plain-text.ts'
import { FORMER_MESSAGE, printJson } from '../../../output/print.ts'

const MARKS = { ok: '✓', warn: '!', bad: '✗' } as const
const COLOURS = { ok: 'green', warn: 'yellow', bad: 'red' } as const

export async function doctor(this: CliContext, flags: CommonFlags): Promise<void> {
  const findings = await examineWithProgress(this, flags)
  if (flags.json === true) {
    printJson(
      this,
      findings.map(({ check, level, message, ...rest }) => ({
        check,
        level,
        message,
        fix: 'fix' in rest ? rest.fix : null,
      })),
      FORMER_MESSAGE,
    )
  } else {
    for (const finding of findings) this.process.stdout.write(`${line(this, finding)}\n`)
  }
  if (findings.some(({ level }) => level === 'bad')) this.process.exitCode = 1
}

async function examineWithProgress(context: CliContext, flags: CommonFlags): Promise<Finding[]> {
  using progress = showCheckProgress(context.process.stderr)
  return await examine({ ...(await findSettingsSource(context, flags)), onChecked: progress.update })
}

function line(context: CliContext, finding: Finding): string {
  const { stdout } = context.process
  const mark = styleText(COLOURS[finding.level], MARKS[finding.level], { stream: stdout, validateStream: true })
  const message = `${mark} ${finding.check.padEnd(12)} ${sanitizeForTerminal(finding.message)}`
  return finding.level === 'ok' ? message : `${message}\n    fix: ${sanitizeForTerminal(finding.fix)}`
}
