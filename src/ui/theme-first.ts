// Runs before the first paint, so that the page does not flash in the system theme first.
import { applyTheme, readTheme } from './theme.ts'

applyTheme(readTheme())
