import { Plus } from "lucide-react";
import { Link } from "react-router-dom";
import { paths } from "@/app/paths";
import { Button, type ButtonProps } from "@/components/ui/button";
import { t } from "@/messages";
import "@/messages/en/myRequests";

/** The link to a new request; the primary button unless the page has another. */
export function NewRequest(props: Pick<ButtonProps, "variant" | "className">) {
  return (
    <Button asChild variant="primary" {...props}>
      <Link to={paths.submitRequest}>
        <Plus aria-hidden="true" />
        {t("myRequests.newRequest")}
      </Link>
    </Button>
  );
}
