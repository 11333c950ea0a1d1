import type { CliContext, CommonFlags, ListFlags } from '../../../define.ts'
import { openRunningProcess } from '../../../operations/running-process.ts'
import { printJson, printList, write } from '../../../output/print.ts'

export async function listNotices(this: CliContext, flags: ListFlags): Promise<void> {
  using client = await openRunningProcess(this, flags)
  printList(this, flags, {
    rows: await client.call('notices'),
    empty: 'no notices; send one with: sluice notice test',
    columns: [
      { title: 'TIME', value: (row) => row.timestamp },
      { title: 'KIND', value: (row) => row.type },
      { title: 'DELIVERY', value: (row) => row.deliveries.map(({ receiver, state }) => `${receiver} ${state}`) },
      { title: 'MESSAGE', value: (row) => row.message },
      {
        title: 'LAST FAILURE',
        value: (row) => row.deliveries.find(({ last_failure }) => last_failure !== null)?.last_failure,
        wide: true,
      },
      { title: 'ID', value: (row) => row.id, wide: true },
    ],
  })
}

export async function testNotice(this: CliContext, flags: CommonFlags): Promise<void> {
  using client = await openRunningProcess(this, flags)
  const notice = await client.call('notice-test')
  if (flags.json === true) return printJson(this, notice)
  const receivers = notice.deliveries.map(({ receiver }) => receiver).join(', ')
  write(this, `${notice.id} is being sent to ${receivers}; see whether it arrived with: sluice notice list`)
}
