// Runs before the first paint, so that a chosen theme does not flash in after the system's.
import { applyTheme, readTheme } from './theme.ts'

applyTheme(readTheme())
