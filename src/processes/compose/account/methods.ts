import { accountPageMethods } from '../pages/account.ts'
import type { AccountMethods } from '../threads/protocol.ts'
import { type AccountReportsDeps, accountReportMethods, createAccountReports } from './reports.ts'

/** What the control plane does for the account endpoints and the account page of its gateway threads. */
export function accountMethodsOf(deps: AccountReportsDeps): AccountMethods {
  return { ...accountReportMethods(createAccountReports(deps)), ...accountPageMethods(deps.log) }
}
