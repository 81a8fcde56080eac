import { defineSandbox } from "eve/sandbox";
import { noSandbox } from "../../../lib/no-sandbox";

export const environment = noSandbox.environment();
export default defineSandbox(() => environment.open());
