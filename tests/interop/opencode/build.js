// The plugin and the client, built from their sources and laid out as npm installs them.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Builds both into `home`; gives the folder of the plugin's package. `modules` has the compiler and the types. */
export function buildPlugin(root, modules, home) {
  const installed = join(home, "node_modules");
  mkdirSync(installed);
  for (const name of ["@opencode-ai", "@types"]) symlinkSync(join(modules, name), join(installed, name));

  /** The compiler writes nothing for sources inside of `node_modules`, so a package moves there when it is built. */
  const build = (folder, name, prepare = () => {}) => {
    const [made, target] = [join(home, folder), join(installed, name)];
    cpSync(join(root, "clients", folder), made, { recursive: true, filter: (from) => !/\/(node_modules|dist)$/.test(from) });
    prepare(made);
    compile(modules, made);
    renameSync(made, target);
    return target;
  };

  build("typescript", "abridged-client", (made) => {
    cpSync(join(root, "protocol", "abridged.d.ts"), join(made, "src", "protocol.ts"));
    // Other modules of the client need the types of other packages.
    renameSync(join(made, "tsconfig.json"), join(made, "base.json"));
    writeFileSync(join(made, "tsconfig.json"), JSON.stringify({ extends: "./base.json", include: [], files: ["src/index.ts"] }));
  });
  return build("opencode", "abridged-opencode");
}

function compile(modules, folder) {
  try {
    execFileSync(process.execPath, [join(modules, "typescript", "bin", "tsc"), "--project", folder], { encoding: "utf8" });
  } catch ({ stdout }) {
    throw new Error(`${folder} does not build:\n${stdout}`);
  }
}
